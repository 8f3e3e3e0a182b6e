locals {
  # Who wakes us. A key is the entry point in functions/KEY.py; the service is called sre-KEY with hyphens.
  # topic: what is pushed to it. open: reachable from outside, and it checks its callers itself.
  # settings: what it is told beside the common ones. min: only Slack's three seconds need a warm instance.
  functions = {
    on_log_event = { topic = "log_events", open = false, min = 0, max = 5, concurrency = 8, memory = "1Gi", timeout = 120, settings = [] }
    on_alert     = { topic = "alerts", open = false, min = 0, max = 3, concurrency = 8, memory = "1Gi", timeout = 120, settings = [] }
    on_incident = { topic = "incidents", open = false, min = 0, max = 3, concurrency = 4, memory = "1Gi", timeout = 540,
      settings = ["PLATFORM", "POLICY", "MODEL_ENDPOINTS", "MODEL_NAME", "MODEL_ASK_WHEN", "MODEL_WAKE_WHEN", "MODEL_FOLLOW_UP",
    "SLACK_CHANNEL", "SLACK_API_URL", "PAGERDUTY_URL", "WEBHOOK_URLS", "PUBLIC_URL"] }
    on_decision = { topic = "decisions", open = false, min = 0, max = 1, concurrency = 1, memory = "1Gi", timeout = 540,
    settings = ["PLATFORM", "POLICY", "KILL_SWITCH", "RECEIPT_KMS"] }
    on_tick = { topic = "", open = false, min = 0, max = 1, concurrency = 1, memory = "1Gi", timeout = 540,
    settings = ["PLATFORM", "POLICY"] }
    decide = { topic = "", open = true, min = var.decide_warm ? 1 : 0, max = 3, concurrency = 20, memory = "1Gi", timeout = 30,
    settings = ["POLICY", "KILL_SWITCH", "PUBLIC_URL", "RECEIPT_KMS", "DECIDE_URL", "ID_TOKEN_AUDIENCES", "IAP_AUDIENCE"] }
    ingest = { topic = "", open = true, min = 0, max = 3, concurrency = 20, memory = "512Mi", timeout = 60, settings = [] }
    # It reads, and hands answers on to decide with the person's own signed assertion; it needs no right for that.
    console = { topic = "", open = false, min = 0, max = 2, concurrency = 20, memory = "1Gi", timeout = 60,
    settings = ["MODEL_USD_PER_MILLION_IN", "MODEL_USD_PER_MILLION_OUT", "IAP_AUDIENCE", "PUBLIC_URL", "POLICY", "DECIDE_URL"] }
  }

  times = ["APPROVAL_TTL_S", "COOL_OFF_S", "VERIFY_WINDOW_S", "QUIET_S", "SETTLE_S", "POLL_S", "LEASE_S",
  "RENOTIFY_AFTER_S", "RENOTIFY_TIMES"]

  # Where traces go, the same for all; deploy.sh adds what sends them when the first is set (docs/telemetry.md).
  # All but the second are read by OpenTelemetry's SDK itself; credentials are a secret, OTEL_EXPORTER_OTLP_HEADERS.
  traces = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
  "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"]

  # What every function is told; staged sources stand in /workspace.
  common = {
    STORE    = "firestore:${var.project}"
    BUS      = "pubsub:${var.project}"
    SERVICES = "/workspace/services.toml"
  }

  decide_url = "https://sre-decide-${local.number}.${var.region}.run.app"

  known = merge({
    PUBLIC_URL         = "https://sre-console-${local.number}.${var.region}.run.app"
    ID_TOKEN_AUDIENCES = local.decide_url
    }, var.settings, {
    DECIDE_URL   = local.decide_url
    PLATFORM     = "cloud_run:${var.project}"
    POLICY       = "/workspace/policy.toml"
    RECEIPT_KMS  = "${google_kms_crypto_key.receipts.id}/cryptoKeyVersions/${var.receipt_key_version}"
    IAP_AUDIENCE = "/projects/${local.number}/locations/${var.region}/services/sre-console"
  })

  environment = {
    for name, f in local.functions : name => merge(
      local.common,
      { for key in concat(local.times, local.traces, f.settings) : key => local.known[key] if contains(keys(local.known), key) },
    )
  }

  pushed = { for name, f in local.functions : name => f if f.topic != "" }
}

module "identity" {
  source   = "./modules/identity"
  for_each = local.functions
  name     = replace(each.key, "_", "-")
  purpose  = "Runs the function ${each.key} of the SRE agent."
}

module "function" {
  source      = "./modules/function"
  for_each    = local.functions
  project     = var.project
  region      = var.region
  entry_point = each.key
  source_dir  = "${var.sources}/${each.key}"
  bucket      = google_storage_bucket.source.name
  builder     = google_service_account.builder.id
  images      = google_artifact_registry_repository.functions.id
  key         = google_kms_crypto_key.data.id
  account     = module.identity[each.key].email
  open        = each.value.open
  # The console is reached through IAP, which stands before Cloud Run's own address.
  ingress     = each.value.open || each.key == "console" ? "ALLOW_ALL" : "ALLOW_INTERNAL_ONLY"
  min         = each.value.min
  max         = each.value.max
  concurrency = each.value.concurrency
  memory      = each.value.memory
  timeout     = each.value.timeout
  environment = local.environment[each.key]
  secrets = {
    for key, functions in local.secrets : key => {
      secret  = google_secret_manager_secret.setting[key].secret_id
      version = var.secret_versions[key]
    } if contains(functions, each.key) && contains(keys(var.secret_versions), key)
  }

  depends_on = [google_project_iam_member.builder, google_secret_manager_secret_iam_member.reader]
}

# Where the functions' images are kept; the repository that Google would make has no key of ours.
resource "google_artifact_registry_repository" "functions" {
  repository_id = "sre-functions"
  location      = var.region
  format        = "DOCKER"
  description   = "Images of the SRE agent's functions."
  kms_key_name  = google_kms_crypto_key.data.id
  depends_on    = [google_kms_crypto_key_iam_member.data]
}

resource "google_storage_bucket" "source" {
  #checkov:skip=CKV_GCP_62:Holds build sources only; who reads them stands in the audit log already
  name                        = "${var.project}-sre-agent-source"
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = true

  versioning {
    enabled = true
  }

  encryption {
    default_kms_key_name = google_kms_crypto_key.data.id
  }

  lifecycle_rule {
    condition {
      num_newer_versions = 5
    }
    action {
      type = "Delete"
    }
  }

  depends_on = [google_kms_crypto_key_iam_member.data]
}

resource "google_pubsub_subscription" "push" {
  for_each                   = local.pushed
  name                       = "${local.topics[each.value.topic]}-push"
  topic                      = google_pubsub_topic.this[each.value.topic].id
  ack_deadline_seconds       = 600
  message_retention_duration = "604800s"

  push_config {
    push_endpoint = module.function[each.key].uri

    oidc_token {
      service_account_email = google_service_account.push.email
      audience              = module.function[each.key].uri
    }
  }

  retry_policy {
    minimum_backoff = "10s"
    maximum_backoff = "600s"
  }

  dead_letter_policy {
    dead_letter_topic     = google_pubsub_topic.this["dead_letter"].id
    max_delivery_attempts = 20
  }

  # Without this a subscription that is idle for 31 days is deleted.
  expiration_policy {
    ttl = ""
  }

  depends_on = [google_pubsub_topic_iam_member.dead_letter]
}

# Pub/Sub acknowledges at the source what it has moved to the dead-letter topic.
resource "google_pubsub_subscription_iam_member" "dead_letter" {
  for_each     = google_pubsub_subscription.push
  subscription = each.value.id
  role         = "roles/pubsub.subscriber"
  member       = local.pubsub
}
