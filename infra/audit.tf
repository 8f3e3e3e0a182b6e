# Who read and wrote what: a line in the audit log for each use of a key, a secret or a document. Off by default at Google,
# all but administration: https://cloud.google.com/logging/docs/audit/configure-data-access (2026-11-22).
locals {
  audited = toset(["cloudkms.googleapis.com", "firestore.googleapis.com", "secretmanager.googleapis.com"])
}

resource "google_project_iam_audit_config" "data_access" {
  for_each = local.audited
  project  = var.project
  service  = each.key

  audit_log_config {
    log_type = "ADMIN_READ"
  }

  audit_log_config {
    log_type = "DATA_READ"
  }

  audit_log_config {
    log_type = "DATA_WRITE"
  }
}
