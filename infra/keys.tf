resource "google_kms_key_ring" "this" {
  name       = "sre-agent"
  location   = var.region
  depends_on = [google_project_service.api]
}

# Encrypts messages, secrets, databases, and the functions' source and images.
resource "google_kms_crypto_key" "data" {
  name            = "data"
  key_ring        = google_kms_key_ring.this.id
  rotation_period = "7776000s"

  lifecycle {
    prevent_destroy = true
  }
}

# Signs receipts of decisions: a key that never leaves the service, with a line in the audit log for each use.
resource "google_kms_crypto_key" "receipts" {
  #checkov:skip=CKV_GCP_43:MAC keys have no rotation of their own; docs/operate.md tells how to move to a new version
  name     = "receipts"
  key_ring = google_kms_key_ring.this.id
  purpose  = "MAC"

  version_template {
    algorithm        = "HMAC_SHA256"
    protection_level = "SOFTWARE"
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "google_kms_crypto_key_iam_member" "receipts" {
  for_each      = toset(local.deciders)
  crypto_key_id = google_kms_crypto_key.receipts.id
  role          = "roles/cloudkms.signerVerifier"
  member        = module.identity[each.key].member
}

locals {
  deciders = ["decide", "on_decision"]

  encrypting = {
    firestore = google_project_service_identity.agent["firestore.googleapis.com"].member
    functions = google_project_service_identity.agent["cloudfunctions.googleapis.com"].member
    images    = google_project_service_identity.agent["artifactregistry.googleapis.com"].member
    pubsub    = google_project_service_identity.agent["pubsub.googleapis.com"].member
    run       = google_project_service_identity.agent["run.googleapis.com"].member
    secrets   = google_project_service_identity.agent["secretmanager.googleapis.com"].member
    storage   = "serviceAccount:${data.google_storage_project_service_account.this.email_address}"
  }
}

resource "google_kms_crypto_key_iam_member" "data" {
  for_each      = local.encrypting
  crypto_key_id = google_kms_crypto_key.data.id
  role          = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
  member        = each.value
}
