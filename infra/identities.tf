locals {
  # What each function may do; docs/security.md shows these tables, and a test holds promise S14 over them.
  # A stage sends what an earlier run committed and did not send, so every owner of stages may publish to both topics.
  # A message there is a wake-up with an incident's name: what is decided stands, signed, in the database.
  publishes = {
    on_log_event = ["incidents", "decisions"]
    on_alert     = ["incidents", "decisions"]
    on_incident  = ["incidents", "decisions"]
    on_decision  = ["incidents", "decisions"]
    on_tick      = ["incidents", "decisions"]
    decide       = ["incidents", "decisions"]
    ingest       = ["alerts"]
  }

  # datastore.user reads and writes, datastore.viewer reads; on one database each, by a condition.
  databases_of = {
    on_log_event = { state = "roles/datastore.user" }
    on_alert     = { state = "roles/datastore.user" }
    on_incident  = { state = "roles/datastore.user" }
    on_tick      = { state = "roles/datastore.user" }
    console      = { state = "roles/datastore.viewer" }
    decide       = { state = "roles/datastore.user", control = "roles/datastore.user" }
    on_decision  = { state = "roles/datastore.user", control = "roles/datastore.user" }
  }

  # On the watched Cloud Run services alone; "updater" is our own role without create, delete or setIamPolicy.
  services_of = {
    on_incident = ["roles/run.viewer"]
    on_tick     = ["roles/run.viewer", "roles/run.invoker"]
    on_decision = ["updater", "roles/run.invoker"]
  }

  # In the projects of the watched services: "logs" reads entries, "operations" reads how far a change has come.
  projects_of = {
    on_incident = ["logs", "roles/monitoring.viewer"]
    on_tick     = ["operations", "roles/monitoring.viewer"]
    on_decision = ["operations"]
  }

  updater_permissions    = ["run.services.get", "run.services.update", "run.revisions.get", "run.revisions.list"]
  logs_permissions       = ["logging.logEntries.list"]
  operations_permissions = ["run.operations.get"]
  lifecycle_permissions  = ["run.services.delete"]

  run_services = { for name, s in var.watched : name => s if s.platform == "cloud_run" }
  buckets      = toset(flatten([for s in values(var.watched) : s.buckets]))

  publishing = merge([
    for function, topics in local.publishes : { for topic in topics : "${function}/${topic}" => { function = function, topic = topic } }
  ]...)
  keeping = merge([
    for function, databases in local.databases_of : {
      for database, role in databases : "${function}/${database}" => { function = function, database = database, role = role }
    }
  ]...)
  serving = merge([
    for function, roles in local.services_of : merge([
      for role in roles : { for name, s in local.run_services : "${function}/${role}/${name}" => { function = function, role = role, name = name } }
    ]...)
  ]...)
  reading = merge([
    for function, roles in local.projects_of : merge([
      for role in roles : { for project in local.watched_projects : "${function}/${role}/${project}" => { function = function, role = role, project = project } }
    ]...)
  ]...)
}

resource "google_project_iam_custom_role" "updater" {
  for_each    = local.watched_projects
  project     = each.key
  role_id     = "sreServiceUpdater"
  title       = "SRE agent: updates a service"
  description = "Reads and updates a service and its revisions; cannot create, delete or share one."
  permissions = local.updater_permissions
}

resource "google_project_iam_custom_role" "lifecycle" {
  for_each    = length(var.lifecycle_services) > 0 ? local.watched_projects : toset([])
  project     = each.key
  role_id     = "sreServiceLifecycle"
  title       = "SRE agent: deletes a named service"
  description = "Deletes a service; granted by name, and only for those that were opted in."
  permissions = local.lifecycle_permissions
}

resource "google_cloud_run_v2_service_iam_member" "lifecycle" {
  for_each = { for name, s in local.run_services : name => s if contains(var.lifecycle_services, name) }
  project  = each.value.project
  location = each.value.location
  name     = each.key
  role     = google_project_iam_custom_role.lifecycle[each.value.project].id
  member   = module.identity["on_decision"].member
}

resource "google_project_iam_custom_role" "logs" {
  for_each    = local.watched_projects
  project     = each.key
  role_id     = "sreLogReader"
  title       = "SRE agent: reads log entries"
  description = "Lists entries of logs that are not private."
  permissions = local.logs_permissions
}

resource "google_project_iam_custom_role" "operations" {
  for_each    = local.watched_projects
  project     = each.key
  role_id     = "sreOperationReader"
  title       = "SRE agent: reads operations"
  description = "Reads how far a change has come."
  permissions = local.operations_permissions
}

resource "google_pubsub_topic_iam_member" "publisher" {
  for_each = local.publishing
  topic    = google_pubsub_topic.this[each.value.topic].id
  role     = "roles/pubsub.publisher"
  member   = module.identity[each.value.function].member
}

resource "google_project_iam_member" "database" {
  for_each = local.keeping
  project  = var.project
  role     = each.value.role
  member   = module.identity[each.value.function].member

  condition {
    title      = "only-${local.databases[each.value.database]}"
    expression = "resource.name == \"projects/${var.project}/databases/${local.databases[each.value.database]}\""
  }
}

resource "google_cloud_run_v2_service_iam_member" "watched" {
  for_each = local.serving
  project  = local.run_services[each.value.name].project
  location = local.run_services[each.value.name].location
  name     = each.value.name
  role     = each.value.role == "updater" ? google_project_iam_custom_role.updater[local.run_services[each.value.name].project].id : each.value.role
  member   = module.identity[each.value.function].member
}

resource "google_project_iam_member" "watched" {
  for_each = local.reading
  project  = each.value.project
  role = lookup({
    logs       = google_project_iam_custom_role.logs[each.value.project].id
    operations = google_project_iam_custom_role.operations[each.value.project].id
  }, each.value.role, each.value.role)
  member = module.identity[each.value.function].member
}

# Headers of checkpoints, for the arithmetic of memory.
resource "google_storage_bucket_iam_member" "checkpoints" {
  for_each = local.buckets
  bucket   = each.key
  role     = "roles/storage.objectViewer"
  member   = module.identity["on_incident"].member
}

# A new revision runs as its service's own account; the executor may act as those accounts and no other.
resource "google_service_account_iam_member" "runtime" {
  for_each           = toset(values(var.runtime_accounts))
  service_account_id = "projects/-/serviceAccounts/${each.key}"
  role               = "roles/iam.serviceAccountUser"
  member             = module.identity["on_decision"].member
}

resource "google_artifact_registry_repository_iam_member" "images" {
  for_each   = toset(var.image_repositories)
  project    = split("/", each.key)[1]
  location   = split("/", each.key)[3]
  repository = split("/", each.key)[5]
  role       = "roles/artifactregistry.reader"
  member     = module.identity["on_decision"].member
}

resource "google_service_account" "push" {
  account_id   = "sre-push"
  display_name = "Pushes messages of the SRE agent to its functions."
  depends_on   = [google_project_service.api]
}

resource "google_service_account" "scheduler" {
  account_id   = "sre-scheduler"
  display_name = "Wakes the SRE agent once a minute."
  depends_on   = [google_project_service.api]
}

resource "google_service_account" "canary" {
  account_id   = "sre-canary"
  display_name = "Writes the canary entry that the SRE agent must hear."
  depends_on   = [google_project_service.api]
}

resource "google_service_account" "builder" {
  account_id   = "sre-builder"
  display_name = "Builds the functions of the SRE agent."
  depends_on   = [google_project_service.api]
}

resource "google_project_iam_member" "builder" {
  #checkov:skip=CKV_GCP_49:Cloud Build takes this role on the project only; the account runs builds and nothing else
  for_each = toset(["roles/cloudbuild.builds.builder", "roles/logging.logWriter"])
  project  = var.project
  role     = each.key
  member   = google_service_account.builder.member
}

resource "google_project_iam_member" "canary" {
  project = var.project
  role    = "roles/logging.logWriter"
  member  = google_service_account.canary.member
}

resource "google_cloud_run_v2_service_iam_member" "push" {
  for_each = local.pushed
  location = var.region
  name     = module.function[each.key].service
  role     = "roles/run.invoker"
  member   = google_service_account.push.member
}

resource "google_cloud_run_v2_service_iam_member" "scheduler" {
  location = var.region
  name     = module.function["on_tick"].service
  role     = "roles/run.invoker"
  member   = google_service_account.scheduler.member
}

# Slack, webhooks and foreign alert senders carry no Google token: these two check signatures, tokens and secrets themselves.
resource "google_cloud_run_v2_service_iam_member" "open" {
  #checkov:skip=CKV_GCP_102:Slack and webhooks cannot send a Google token; decide and ingest verify signatures and secrets themselves
  for_each = { for name, f in local.functions : name => f if f.open && (name != "ingest" || var.ingest_public) }
  location = var.region
  name     = module.function[each.key].service
  role     = "roles/run.invoker"
  member   = "allUsers"
}

resource "google_cloud_run_v2_service_iam_member" "console" {
  location   = var.region
  name       = module.function["console"].service
  role       = "roles/run.invoker"
  member     = local.iap
  depends_on = [google_project_service_identity.agent]
}

resource "google_iap_web_cloud_run_service_iam_member" "console" {
  for_each               = toset(var.console_members)
  location               = var.region
  cloud_run_service_name = module.function["console"].service
  role                   = "roles/iap.httpsResourceAccessor"
  member                 = each.key
}
