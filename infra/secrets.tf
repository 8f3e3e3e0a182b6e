locals {
  # Every secret of docs/settings.md that a function uses, and the functions that may read it: nobody else can. HF_TOKEN is not
  # here, because no incident asks the model hub. The last one is for the collector of traces (docs/telemetry.md), to which
  # every function sends.
  secrets = {
    RECEIPT_KEY                = ["decide", "on_decision"]
    SLACK_SIGNING_SECRET       = ["decide"]
    WEBHOOK_DECIDERS           = ["decide"]
    WEBHOOK_SECRETS            = ["on_incident"]
    SLACK_TOKEN                = ["on_incident"]
    PAGERDUTY_ROUTING_KEY      = ["on_incident"]
    PAGERDUTY_SECRETS          = ["decide"]
    NOTIFY_TARGETS             = ["on_incident"]
    MODEL_API_KEY              = ["on_incident"]
    SERVICE_API_KEYS           = ["on_tick", "on_decision"]
    INGEST_SECRETS             = ["ingest"]
    FORM_KEY                   = ["console"]
    OTEL_EXPORTER_OTLP_HEADERS = ["on_log_event", "on_alert", "on_incident", "on_decision", "on_tick", "decide", "ingest", "console"]
  }

  # A right to read is given where there is a value to read.
  readers = merge([
    for secret, functions in local.secrets : {
      for function in functions : "${secret}/${function}" => { secret = secret, function = function }
    } if contains(keys(var.secret_versions), secret)
  ]...)
}

resource "google_secret_manager_secret" "setting" {
  for_each  = local.secrets
  secret_id = "sre-${lower(replace(each.key, "_", "-"))}"

  replication {
    user_managed {
      replicas {
        location = var.region
        customer_managed_encryption {
          kms_key_name = google_kms_crypto_key.data.id
        }
      }
    }
  }

  depends_on = [google_kms_crypto_key_iam_member.data]
}

resource "google_secret_manager_secret_iam_member" "reader" {
  for_each  = local.readers
  secret_id = google_secret_manager_secret.setting[each.value.secret].id
  role      = "roles/secretmanager.secretAccessor"
  member    = module.identity[each.value.function].member
}
