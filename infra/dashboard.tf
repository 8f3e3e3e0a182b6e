locals {
  # One row each: a metric of infra/metrics.tf (`own`) or of Google, how its points are joined in an hour, and by which label
  # lines are told apart. `of` is DELTA for counts, SECONDS for distributions, GAUGE for what stands at a moment.
  charts = [
    { title = "Incidents by phase entered", own = true, metric = "sre_incidents", of = "DELTA", by = "phase", resource = "cloud_run_revision" },
    { title = "Incidents resolved or escalated, by class", own = true, metric = "sre_incidents", of = "DELTA", by = "class", resource = "cloud_run_revision", only = "metric.labels.phase = monitoring.regex.full_match(\"RESOLVED|SELF_RECOVERED|ESCALATED\")" },
    { title = "Time to first diagnosis, median", own = true, metric = "sre_first_diagnosis_seconds", of = "SECONDS", by = "", resource = "cloud_run_revision" },
    { title = "Time to plan, median", own = true, metric = "sre_plan_seconds", of = "SECONDS", by = "", resource = "cloud_run_revision" },
    { title = "Time to decision, median", own = true, metric = "sre_decision_seconds", of = "SECONDS", by = "", resource = "cloud_run_revision" },
    { title = "Time to recovery, median", own = true, metric = "sre_recovery_seconds", of = "SECONDS", by = "", resource = "cloud_run_revision" },
    { title = "Approved plans refused at the last look", own = true, metric = "sre_plans_refused", of = "DELTA", by = "class", resource = "cloud_run_revision" },
    { title = "Changes that were undone", own = true, metric = "sre_roll_backs", of = "DELTA", by = "class", resource = "cloud_run_revision" },
    { title = "Oldest message, by subscription", own = false, metric = "pubsub.googleapis.com/subscription/oldest_unacked_message_age", of = "GAUGE", by = "subscription_id", resource = "pubsub_subscription", only = "resource.labels.subscription_id = monitoring.regex.full_match(\"sre-.*-push\")" },
    { title = "Dead letters", own = false, metric = "pubsub.googleapis.com/subscription/num_undelivered_messages", of = "GAUGE", by = "subscription_id", resource = "pubsub_subscription", only = "resource.labels.subscription_id = monitoring.regex.full_match(\"sre-dead-letter.*\")" },
    { title = "Deliveries that failed, by topic", own = true, metric = "sre_delivery_failures", of = "DELTA", by = "topic", resource = "cloud_run_revision" },
    { title = "Requests that the model did not answer, by reason", own = true, metric = "sre_model_errors", of = "DELTA", by = "reason", resource = "cloud_run_revision" },
  ]

  joined = {
    DELTA   = { aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", plot = "STACKED_BAR", unit = "" }
    SECONDS = { aligner = "ALIGN_DELTA", reducer = "REDUCE_PERCENTILE_50", plot = "LINE", unit = "s" }
    GAUGE   = { aligner = "ALIGN_MAX", reducer = "REDUCE_MAX", plot = "LINE", unit = "" }
  }
}

resource "google_monitoring_dashboard" "agent" {
  dashboard_json = jsonencode({
    displayName = "SRE agent"
    gridLayout = {
      columns = 2
      widgets = [for chart in local.charts : {
        title = chart.title
        xyChart = {
          dataSets = [{
            plotType = local.joined[chart.of].plot
            # What is empty is left out: the API drops it, and every plan would show a difference.
            timeSeriesQuery = merge(local.joined[chart.of].unit == "" ? {} : { unitOverride = local.joined[chart.of].unit }, {
              timeSeriesFilter = {
                filter = join(" AND ", compact([
                  "resource.type = \"${chart.resource}\"",
                  "metric.type = \"${chart.own ? "logging.googleapis.com/user/" : ""}${chart.metric}\"",
                  try(chart.only, ""),
                ]))
                aggregation = merge(chart.by == "" ? {} : { groupByFields = ["${chart.own ? "metric" : "resource"}.label.${chart.by}"] }, {
                  alignmentPeriod    = "3600s"
                  perSeriesAligner   = local.joined[chart.of].aligner
                  crossSeriesReducer = local.joined[chart.of].reducer
                })
              }
            })
          }]
        }
      }]
    }
  })

  depends_on = [google_logging_metric.this, google_logging_metric.duration]
}
