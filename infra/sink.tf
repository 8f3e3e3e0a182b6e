locals {
  watched_projects = toset([for s in values(var.watched) : s.project if s.project != ""])
  sinks = {
    for pair in setproduct(local.watched_projects, keys(var.sink_filters)) :
    "${pair[0]}/${pair[1]}" => { project = pair[0], filter = var.sink_filters[pair[1]], name = "sre-log-events-${pair[1]}" }
  }
}

resource "google_logging_project_sink" "log_events" {
  for_each               = local.sinks
  project                = each.value.project
  name                   = each.value.name
  description            = "What the failure catalogue needs of the watched services, for the SRE agent."
  destination            = "pubsub.googleapis.com/${google_pubsub_topic.this["log_events"].id}"
  filter                 = each.value.filter
  unique_writer_identity = true
}

resource "google_pubsub_topic_iam_member" "sink" {
  for_each = google_logging_project_sink.log_events
  topic    = google_pubsub_topic.this["log_events"].id
  role     = "roles/pubsub.publisher"
  member   = each.value.writer_identity
}
