# vLLM on Cloud Run with one GPU, private, the model read from a bucket. Flags and probe budget are computed by
# sre-agent fit and advise (infra/gemma.example.tfvars.json) and held equal to them by a test.
resource "google_service_account" "this" {
  account_id   = "sre-model-${substr(sha256(var.name), 0, 8)}"
  display_name = "Runs the model endpoint ${var.name} of the SRE agent."
}

resource "google_storage_bucket_iam_member" "model" {
  bucket = var.bucket
  role   = "roles/storage.objectViewer"
  member = google_service_account.this.member
}

resource "google_cloud_run_v2_service" "this" {
  project             = var.project
  name                = var.name
  location            = var.location
  ingress             = "INGRESS_TRAFFIC_ALL"
  deletion_protection = false

  template {
    service_account                  = google_service_account.this.email
    timeout                          = "3600s"
    max_instance_request_concurrency = 16
    gpu_zonal_redundancy_disabled    = true

    scaling {
      min_instance_count = 0
      max_instance_count = 1
    }

    node_selector {
      accelerator = var.accelerator
    }

    containers {
      name  = "vllm"
      image = var.image
      args  = concat(["--model", "/mnt/models/${var.bucket_path}", "--served-model-name", var.model, "--port", "8080"], var.flags)

      ports {
        container_port = 8080
      }

      env {
        name  = "VLLM_ENGINE_READY_TIMEOUT_S"
        value = tostring(var.engine_ready)
      }
      env {
        name  = "HF_HUB_OFFLINE"
        value = "1"
      }

      resources {
        limits = {
          cpu              = var.cpu
          memory           = var.memory
          "nvidia.com/gpu" = "1"
        }
        cpu_idle          = false
        startup_cpu_boost = true
      }

      startup_probe {
        period_seconds    = var.probe_period
        timeout_seconds   = min(10, var.probe_period - 1)
        failure_threshold = var.probe_count

        http_get {
          path = "/health"
          port = 8080
        }
      }

      liveness_probe {
        period_seconds    = 60
        timeout_seconds   = 30
        failure_threshold = 5

        http_get {
          path = "/health"
          port = 8080
        }
      }

      volume_mounts {
        name       = "models"
        mount_path = "/mnt/models"
      }
    }

    volumes {
      name = "models"

      gcs {
        bucket    = var.bucket
        read_only = true
      }
    }
  }

  depends_on = [google_storage_bucket_iam_member.model]
}

resource "google_cloud_run_v2_service_iam_member" "caller" {
  project  = var.project
  location = var.location
  name     = google_cloud_run_v2_service.this.name
  role     = "roles/run.invoker"
  member   = var.caller
}
