locals {
  apis = toset([
    "artifactregistry.googleapis.com",
    "cloudbuild.googleapis.com",
    "cloudfunctions.googleapis.com",
    "cloudkms.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "cloudscheduler.googleapis.com",
    "firestore.googleapis.com",
    "iam.googleapis.com",
    "iap.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "pubsub.googleapis.com",
    "run.googleapis.com",
    "secretmanager.googleapis.com",
    "storage.googleapis.com",
  ])
}

data "google_project" "this" {
  project_id = var.project
}

resource "google_project_service" "api" {
  for_each           = local.apis
  service            = each.key
  disable_on_destroy = false
}

# Service agents that need a right before anything is made with it.
resource "google_project_service_identity" "agent" {
  for_each = toset([
    "artifactregistry.googleapis.com",
    "cloudfunctions.googleapis.com",
    "firestore.googleapis.com",
    "iap.googleapis.com",
    "pubsub.googleapis.com",
    "run.googleapis.com",
    "secretmanager.googleapis.com",
  ])
  provider   = google-beta
  service    = each.key
  depends_on = [google_project_service.api]
}

data "google_storage_project_service_account" "this" {
  depends_on = [google_project_service.api]
}

locals {
  number     = data.google_project.this.number
  pubsub     = "serviceAccount:service-${local.number}@gcp-sa-pubsub.iam.gserviceaccount.com"
  monitoring = "serviceAccount:service-${local.number}@gcp-sa-monitoring-notification.iam.gserviceaccount.com"
  iap        = "serviceAccount:service-${local.number}@gcp-sa-iap.iam.gserviceaccount.com"
}
