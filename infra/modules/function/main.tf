data "archive_file" "source" {
  type        = "zip"
  source_dir  = var.source_dir
  output_path = "${var.source_dir}.zip"
}

resource "google_storage_bucket_object" "source" {
  name   = "${var.entry_point}/${data.archive_file.source.output_sha256}.zip"
  bucket = var.bucket
  source = data.archive_file.source.output_path
}

resource "google_cloudfunctions2_function" "this" {
  #checkov:skip=CKV_GCP_124:decide, ingest and console are called from outside; they check signatures, secrets and IAP themselves
  name         = "sre-${replace(var.entry_point, "_", "-")}"
  project      = var.project
  location     = var.region
  description  = "The function ${var.entry_point} of the SRE agent."
  kms_key_name = var.key

  build_config {
    runtime           = "python312"
    entry_point       = var.entry_point
    service_account   = var.builder
    docker_repository = var.images

    # The build compiles every file, and the image gives all files one date. Compiled by date they would count as stale
    # and be compiled again at every start; with this set Python compiles them by content (docs.python.org, py_compile).
    environment_variables = { SOURCE_DATE_EPOCH = "315532801" }

    source {
      storage_source {
        bucket = var.bucket
        object = google_storage_bucket_object.source.name
      }
    }
  }

  service_config {
    service_account_email            = var.account
    ingress_settings                 = var.ingress
    min_instance_count               = var.min
    max_instance_count               = var.max
    max_instance_request_concurrency = var.concurrency
    available_memory                 = var.memory
    available_cpu                    = "1"
    timeout_seconds                  = var.timeout
    all_traffic_on_latest_revision   = true
    environment_variables            = merge(var.environment, { THREADS = tostring(var.concurrency) })

    dynamic "secret_environment_variables" {
      for_each = var.secrets
      content {
        key        = secret_environment_variables.key
        project_id = var.project
        secret     = secret_environment_variables.value.secret
        version    = secret_environment_variables.value.version
      }
    }
  }
}
