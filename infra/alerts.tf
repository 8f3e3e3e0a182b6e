resource "google_monitoring_notification_channel" "agent" {
  display_name = "SRE agent"
  type         = "pubsub"
  labels       = { topic = google_pubsub_topic.this["alerts"].id }
}

# People, never the agent: these say that the agent itself is in trouble.
resource "google_monitoring_notification_channel" "alert_emails" {
  for_each     = toset(var.alert_emails)
  display_name = each.key
  type         = "email"
  labels       = { email_address = each.key }
}

locals {
  alert_emails = [for channel in google_monitoring_notification_channel.alert_emails : channel.id]
  rules        = { for rule in yamldecode(file("${path.module}/vllm_rules.yaml")).groups[0].rules : rule.alert => rule }
}

resource "google_monitoring_alert_policy" "vllm" {
  for_each     = var.vllm_metrics ? local.rules : {}
  display_name = each.key
  combiner     = "OR"
  severity     = upper(each.value.labels.severity)
  user_labels  = { sre_agent = "true" }

  conditions {
    display_name = each.key

    condition_prometheus_query_language {
      query               = each.value.expr
      duration            = each.value["for"]
      evaluation_interval = "30s"
      alert_rule          = each.key
      rule_group          = "vllm"
      labels              = each.value.labels
    }
  }

  documentation {
    content   = each.value.annotations.summary
    mime_type = "text/markdown"
  }

  notification_channels = [google_monitoring_notification_channel.agent.id]

  alert_strategy {
    auto_close = "1800s"
  }
}

# Request errors at volume belong here and not in the sink: one alert, not one message for each request.
resource "google_monitoring_alert_policy" "errors" {
  for_each     = local.run_services
  display_name = "SRE agent: ${each.key} answers with errors"
  combiner     = "OR"
  severity     = "ERROR"
  user_labels  = { sre_agent = "true" }

  conditions {
    display_name = "5xx or 429 for a minute"

    condition_threshold {
      filter          = "resource.type = \"cloud_run_revision\" AND resource.labels.service_name = \"${each.key}\" AND metric.type = \"run.googleapis.com/request_count\" AND (metric.labels.response_code_class = \"5xx\" OR metric.labels.response_code = \"429\")"
      comparison      = "COMPARISON_GT"
      threshold_value = 0.05
      duration        = "60s"

      aggregations {
        alignment_period     = "60s"
        per_series_aligner   = "ALIGN_RATE"
        cross_series_reducer = "REDUCE_SUM"
        group_by_fields      = ["resource.label.service_name", "resource.label.location", "resource.label.project_id"]
      }
    }
  }

  notification_channels = [google_monitoring_notification_channel.agent.id]

  alert_strategy {
    auto_close = "1800s"
  }
}

# The agent cannot report that it receives no events: Monitoring does, when the canary does not arrive.
resource "google_monitoring_alert_policy" "deaf" {
  display_name = "SRE agent: receives no events"
  combiner     = "OR"
  severity     = "CRITICAL"

  conditions {
    display_name = "no canary received for 15 minutes"

    condition_absent {
      filter   = "resource.type = \"cloud_run_revision\" AND metric.type = \"logging.googleapis.com/user/${google_logging_metric.this["sre_canary_received"].name}\""
      duration = "900s"

      aggregations {
        alignment_period     = "300s"
        per_series_aligner   = "ALIGN_COUNT"
        cross_series_reducer = "REDUCE_SUM"
      }
    }
  }

  documentation {
    content   = "Log entries do not reach the agent: look at the sink, sre-log-events-push, on_log_event and the job sre-canary (docs/operate.md, 'The agent receives no events')."
    mime_type = "text/markdown"
  }

  notification_channels = local.alert_emails
}

locals {
  own_alerts = {
    dead_letters = {
      title  = "messages were given up"
      filter = "resource.type = \"pubsub_subscription\" AND resource.labels.subscription_id = \"${google_pubsub_subscription.dead_letter.name}\" AND metric.type = \"pubsub.googleapis.com/subscription/num_undelivered_messages\""
      above  = 0
      lasts  = "0s"
    }
    queue_age = {
      title  = "messages wait for ten minutes"
      filter = "resource.type = \"pubsub_subscription\" AND resource.labels.subscription_id = monitoring.regex.full_match(\"sre-.*-push\") AND metric.type = \"pubsub.googleapis.com/subscription/oldest_unacked_message_age\""
      above  = 600
      lasts  = "300s"
    }
    sink_errors = {
      title  = "the log sink cannot export"
      filter = "resource.type = \"logging_sink\" AND resource.labels.name = monitoring.regex.full_match(\"sre-log-events.*\") AND metric.type = \"logging.googleapis.com/exports/error_count\""
      above  = 0
      lasts  = "0s"
    }
  }
}

resource "google_monitoring_alert_policy" "own" {
  for_each     = local.own_alerts
  display_name = "SRE agent: ${each.value.title}"
  combiner     = "OR"
  severity     = "ERROR"

  conditions {
    display_name = each.value.title

    condition_threshold {
      filter          = each.value.filter
      comparison      = "COMPARISON_GT"
      threshold_value = each.value.above
      duration        = each.value.lasts

      aggregations {
        alignment_period   = "60s"
        per_series_aligner = "ALIGN_MAX"
      }
    }
  }

  notification_channels = local.alert_emails

  alert_strategy {
    auto_close = "86400s"
  }
}
