locals {
  databases = {
    state   = "sre-state"
    control = "sre-control"
  }
}

resource "google_firestore_database" "this" {
  for_each                          = local.databases
  name                              = each.value
  location_id                       = var.region
  type                              = "FIRESTORE_NATIVE"
  concurrency_mode                  = "PESSIMISTIC"
  point_in_time_recovery_enablement = "POINT_IN_TIME_RECOVERY_ENABLED"
  delete_protection_state           = var.deletion_protection ? "DELETE_PROTECTION_ENABLED" : "DELETE_PROTECTION_DISABLED"
  deletion_policy                   = var.deletion_protection ? "ABANDON" : "DELETE"

  # The key of a database is chosen when it is made and never changed afterwards.
  dynamic "cmek_config" {
    for_each = var.databases_own_key ? [google_kms_crypto_key.data.id] : []
    content {
      kms_key_name = cmek_config.value
    }
  }

  depends_on = [google_project_service.api, google_kms_crypto_key_iam_member.data]
}

resource "google_firestore_backup_schedule" "daily" {
  for_each  = google_firestore_database.this
  database  = each.value.name
  retention = "1209600s"

  daily_recurrence {}
}

# Documents that say when they may go; the names are held equal to the store's own by a test.
resource "google_firestore_field" "expires" {
  for_each   = local.expiring
  database   = google_firestore_database.this[each.value.database].name
  collection = each.value.collection
  field      = each.value.field

  ttl_config {}
  index_config {}
}

resource "google_firestore_index" "query" {
  for_each    = local.indexes
  database    = google_firestore_database.this[each.value.database].name
  collection  = each.value.collection
  query_scope = "COLLECTION"

  dynamic "fields" {
    for_each = each.value.fields
    content {
      field_path = fields.value.path
      order      = fields.value.order
    }
  }
}
