resource "google_kms_key_ring" "this" {
  name       = "sre-agent"
  location   = var.region
  depends_on = [google_project_service.api]
}

# Encrypts messages, secrets and the functions' source.
resource "google_kms_crypto_key" "data" {
  name            = "data"
  key_ring        = google_kms_key_ring.this.id
  rotation_period = "7776000s"

  lifecycle {
    prevent_destroy = true
  }
}

locals {
  encrypting = {
    pubsub  = google_project_service_identity.agent["pubsub.googleapis.com"].member
    secrets = google_project_service_identity.agent["secretmanager.googleapis.com"].member
    storage = "serviceAccount:${data.google_storage_project_service_account.this.email_address}"
  }
}

resource "google_kms_crypto_key_iam_member" "data" {
  for_each      = local.encrypting
  crypto_key_id = google_kms_crypto_key.data.id
  role          = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
  member        = each.value
}
