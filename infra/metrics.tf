locals {
  # The agent's own numbers, counted from its canonical log events; docs/operate.md explains each. Names are those of
  # /metrics where the console's own exposition has the same number.
  own_log = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=~\"^sre-\""
  live    = "jsonPayload.run=\"live\""

  counters = {
    sre_canary_received      = { filter = "jsonPayload.message=\"canary.received\"", labels = {} }
    sre_stages               = { filter = "jsonPayload.message=\"stage.finished\"", labels = { stage = "stage", reason = "reason" } }
    sre_stage_failures       = { filter = "jsonPayload.message=\"stage.failed\"", labels = { stage = "stage", error = "error" } }
    sre_delivery_failures    = { filter = "jsonPayload.message=\"delivery.failed\"", labels = { topic = "topic", outcome = "outcome" } }
    sre_model_errors         = { filter = "jsonPayload.message=\"model.failed\"", labels = { reason = "reason" } }
    sre_incidents            = { filter = "jsonPayload.message=\"incident.moved\" AND ${local.live}", labels = { phase = "phase", class = "cause" } }
    sre_roll_backs           = { filter = "jsonPayload.message=\"incident.moved\" AND ${local.live} AND jsonPayload.phase=\"ROLLED_BACK\"", labels = { class = "cause" } }
    sre_plans_refused        = { filter = "jsonPayload.message=\"incident.moved\" AND ${local.live} AND jsonPayload.phase=\"REFUSED\"", labels = { class = "cause" } }
    sre_function_init_failed = { filter = "jsonPayload.message=\"function.init_failed\"", labels = {} }
  }

  # Seconds, as distributions: the field of the event that holds them.
  durations = {
    sre_stage_seconds           = { filter = "jsonPayload.message=\"stage.finished\"", value = "took_s", labels = { stage = "stage" } }
    sre_first_diagnosis_seconds = { filter = "jsonPayload.message=\"incident.moved\" AND ${local.live} AND jsonPayload.phase=\"DIAGNOSED\"", value = "since_open_s", labels = { class = "cause" } }
    sre_plan_seconds            = { filter = "jsonPayload.message=\"incident.moved\" AND ${local.live} AND jsonPayload.phase=\"PLANNED\"", value = "since_open_s", labels = { class = "cause" } }
    sre_decision_seconds        = { filter = "jsonPayload.message=\"incident.moved\" AND ${local.live} AND jsonPayload.phase=(\"APPROVED\" OR \"REJECTED\")", value = "since_plan_s", labels = { class = "cause" } }
    sre_recovery_seconds        = { filter = "jsonPayload.message=\"incident.moved\" AND ${local.live} AND jsonPayload.phase=\"RESOLVED\"", value = "since_open_s", labels = { class = "cause" } }
  }
}

resource "google_logging_metric" "this" {
  for_each    = local.counters
  name        = each.key
  description = "Counted from the agent's own log, infra/metrics.tf."
  filter      = "${local.own_log} AND ${each.value.filter}"

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"

    dynamic "labels" {
      for_each = each.value.labels
      content {
        key        = labels.key
        value_type = "STRING"
      }
    }
  }

  label_extractors = { for label, field in each.value.labels : label => "EXTRACT(jsonPayload.${field})" }
}

resource "google_logging_metric" "duration" {
  for_each        = local.durations
  name            = each.key
  description     = "Seconds, from the agent's own log, infra/metrics.tf."
  filter          = "${local.own_log} AND ${each.value.filter}"
  value_extractor = "EXTRACT(jsonPayload.${each.value.value})"

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "DISTRIBUTION"
    unit        = "s"

    dynamic "labels" {
      for_each = each.value.labels
      content {
        key        = labels.key
        value_type = "STRING"
      }
    }
  }

  label_extractors = { for label, field in each.value.labels : label => "EXTRACT(jsonPayload.${field})" }

  bucket_options {
    exponential_buckets {
      num_finite_buckets = 24
      growth_factor      = 2
      scale              = 0.01
    }
  }
}
