locals {
  topics = {
    log_events  = "sre-log-events"
    alerts      = "sre-alerts"
    incidents   = "sre-incidents"
    decisions   = "sre-decisions"
    tick        = "sre-tick"
    dead_letter = "sre-dead-letter"
  }
}

resource "google_pubsub_topic" "this" {
  for_each                   = local.topics
  name                       = each.value
  kms_key_name               = google_kms_crypto_key.data.id
  message_retention_duration = "604800s"

  message_storage_policy {
    allowed_persistence_regions = [var.region]
  }

  depends_on = [google_kms_crypto_key_iam_member.data]
}

# A dead-letter topic without a subscription loses its messages.
resource "google_pubsub_subscription" "dead_letter" {
  name                       = "${local.topics.dead_letter}-pull"
  topic                      = google_pubsub_topic.this["dead_letter"].id
  ack_deadline_seconds       = 600
  message_retention_duration = "604800s"
  retain_acked_messages      = false

  expiration_policy {
    ttl = ""
  }
}

resource "google_pubsub_topic_iam_member" "dead_letter" {
  topic  = google_pubsub_topic.this["dead_letter"].id
  role   = "roles/pubsub.publisher"
  member = local.pubsub
}

resource "google_pubsub_topic_iam_member" "monitoring" {
  topic  = google_pubsub_topic.this["alerts"].id
  role   = "roles/pubsub.publisher"
  member = local.monitoring

  depends_on = [google_monitoring_notification_channel.agent]
}
