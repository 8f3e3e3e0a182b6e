resource "google_cloud_scheduler_job" "tick" {
  name             = "sre-tick"
  description      = "Wakes on_tick: watch, verify, expire, order."
  region           = var.region
  schedule         = "* * * * *"
  time_zone        = "Etc/UTC"
  attempt_deadline = "540s"

  http_target {
    http_method = "POST"
    uri         = module.function["on_tick"].uri

    oidc_token {
      service_account_email = google_service_account.scheduler.email
      audience              = module.function["on_tick"].uri
    }
  }
}

# The canary: an entry in a log of its own, which the sink passes and intake must hear.
resource "google_cloud_scheduler_job" "canary" {
  name             = "sre-canary"
  description      = "Writes the entry that proves, every five minutes, that log entries reach the agent."
  region           = var.region
  schedule         = "*/5 * * * *"
  time_zone        = "Etc/UTC"
  attempt_deadline = "60s"

  http_target {
    http_method = "POST"
    uri         = "https://logging.googleapis.com/v2/entries:write"
    headers     = { "Content-Type" = "application/json" }
    body = base64encode(jsonencode({
      logName  = "projects/${var.project}/logs/${local.canary_log}"
      resource = { type = "global" }
      entries  = [{ severity = "INFO", textPayload = "Does the agent hear this?" }]
    }))

    oauth_token {
      service_account_email = google_service_account.canary.email
      scope                 = "https://www.googleapis.com/auth/logging.write"
    }
  }
}

locals {
  canary_log = "sre-canary"
}

# The canary is written where the agent lives, which need not be a project of a watched service.
resource "google_logging_project_sink" "canary" {
  count                  = contains(local.watched_projects, var.project) ? 0 : 1
  name                   = "sre-log-events-canary"
  description            = "The agent's own canary."
  destination            = "pubsub.googleapis.com/${google_pubsub_topic.this["log_events"].id}"
  filter                 = "log_id(\"${local.canary_log}\")"
  unique_writer_identity = true
}

resource "google_pubsub_topic_iam_member" "canary" {
  count  = length(google_logging_project_sink.canary)
  topic  = google_pubsub_topic.this["log_events"].id
  role   = "roles/pubsub.publisher"
  member = google_logging_project_sink.canary[0].writer_identity
}
