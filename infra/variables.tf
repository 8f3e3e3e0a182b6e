variable "project" {
  description = "Id of the project in which the agent lives; the watched services may live in others."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project))
    error_message = "A project id has 6 to 30 lower case letters, digits and hyphens, and starts with a letter."
  }
}

variable "region" {
  description = "Region of the functions, databases, keys and topics, such as us-central1."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "A region looks like us-central1; a zone or a multi-region is none."
  }
}

variable "watched" {
  description = "The watched services by name, generated from services.toml by tools.cloud_values."
  type = map(object({
    platform    = string
    project     = string
    location    = string
    accelerator = string
    buckets     = list(string)
  }))

  validation {
    condition     = length(var.watched) > 0
    error_message = "Nothing is watched: an empty list selects no log entries."
  }
  validation {
    condition     = alltrue([for name, s in var.watched : s.platform != "cloud_run" || (s.project != "" && s.location != "")])
    error_message = "A Cloud Run service needs project and location."
  }
  validation {
    condition     = alltrue([for name, s in var.watched : !startswith(name, "sre-")])
    error_message = "Names that begin with sre- are the agent's own."
  }
}

variable "sink_filters" {
  description = "Filters of the log sinks by name, generated from the failure catalogue by tools.cloud_values."
  type        = map(string)

  validation {
    condition     = alltrue([for text in values(var.sink_filters) : length(text) > 0 && length(text) <= 20000])
    error_message = "A filter is empty or longer than the 20,000 characters that the Logging query language takes."
  }
}

variable "runtime_accounts" {
  description = "E-mail of the runtime service account by watched Cloud Run service; deploy.sh reads them from the services."
  type        = map(string)

  validation {
    condition     = alltrue([for email in values(var.runtime_accounts) : can(regex("^[^@]+@[^@]+[.]gserviceaccount[.]com$", email))])
    error_message = "Each must be the e-mail of a service account."
  }
}

variable "lifecycle_services" {
  description = "Watched Cloud Run services that the agent may delete after an approval; the names in `lifecycle` of policy.toml. None by default."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for name in var.lifecycle_services : can(regex("^[a-z][a-z0-9-]{0,48}$", name))])
    error_message = "Name each service in full, without a pattern."
  }
}

variable "sources" {
  description = "Folder with one staged folder per function, as tools/stage_functions.py writes it."
  type        = string
  default     = "../build/functions"
}

variable "secret_versions" {
  description = "Version number by secret; only secrets named here are given to functions. Values are never in Terraform."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for version in values(var.secret_versions) : can(regex("^[1-9][0-9]*$", version))])
    error_message = "Versions are pinned numbers: 'latest' would change a running function at its next start."
  }
  validation {
    condition     = length(setsubtract(keys(var.secret_versions), ["RECEIPT_KEY", "SLACK_TOKEN", "SLACK_SIGNING_SECRET", "PAGERDUTY_ROUTING_KEY", "PAGERDUTY_SECRETS", "NOTIFY_TARGETS", "WEBHOOK_SECRETS", "WEBHOOK_DECIDERS", "INGEST_SECRETS", "MODEL_API_KEY", "SERVICE_API_KEYS", "FORM_KEY", "OTEL_EXPORTER_OTLP_HEADERS"])) == 0
    error_message = "Only secrets that the agent knows can be given."
  }
}

variable "settings" {
  description = "Optional settings by name (docs/settings.md), such as { SLACK_CHANNEL = \"C0123\", APPROVAL_TTL_S = \"1800\" }."
  type        = map(string)
  default     = {}

  validation {
    condition = length(setsubtract(keys(var.settings), [
      "APPROVAL_TTL_S", "COOL_OFF_S", "VERIFY_WINDOW_S", "QUIET_S", "SETTLE_S", "POLL_S", "LEASE_S", "KILL_SWITCH",
      "RENOTIFY_AFTER_S", "RENOTIFY_TIMES",
      "MODEL_ENDPOINTS", "MODEL_NAME", "MODEL_ASK_WHEN", "MODEL_WAKE_WHEN", "MODEL_FOLLOW_UP",
      "MODEL_USD_PER_MILLION_IN", "MODEL_USD_PER_MILLION_OUT", "SLACK_CHANNEL", "SLACK_API_URL", "PAGERDUTY_URL", "WEBHOOK_URLS",
      "PUBLIC_URL", "ID_TOKEN_AUDIENCES",
      "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
      "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES",
    ])) == 0
    error_message = "Only optional settings can be given here; the others follow from the installation itself."
  }
}

variable "receipt_key_version" {
  description = "Version of the KMS key that signs receipts; a new one makes open approvals void."
  type        = number
  default     = 1
}

variable "alert_emails" {
  description = "E-mail addresses that are notified when the agent itself fails: it receives no events, is stuck, or loses messages."
  type        = list(string)

  validation {
    condition     = length(var.alert_emails) > 0 && alltrue([for address in var.alert_emails : can(regex("^[^@ ]+@[^@ ]+$", address))])
    error_message = "Give at least one e-mail address: it is notified when the agent receives no events."
  }
}

variable "console_members" {
  description = "Who may open the console behind IAP, such as [\"group:sre@example.com\"]."
  type        = list(string)
  default     = []
}

variable "decide_warm" {
  description = "Whether decide keeps one instance warm, so that a press in Slack is answered within three seconds; most of the monthly price."
  type        = bool
  default     = true
}

variable "ingest_public" {
  description = "Whether senders outside Google Cloud may reach ingest; each must know its own secret all the same."
  type        = bool
  default     = false
}

variable "vllm_metrics" {
  description = "Whether the watched services write vLLM's metrics to Managed Service for Prometheus; then its rules are made."
  type        = bool
  default     = false
}

variable "image_repositories" {
  description = "Artifact Registry repositories of the served images, as projects/P/locations/L/repositories/R: the executor must read them."
  type        = list(string)
  default     = []
}

variable "deletion_protection" {
  description = "Whether the databases refuse to be destroyed; deploy.sh destroy turns it off after asking."
  type        = bool
  default     = true
}

variable "gemma_endpoint" {
  description = "A self-hosted model for the agent's own words; null deploys none. Values come from sre-agent fit and advise."
  type = object({
    name         = string
    location     = string
    image        = string
    bucket       = string
    bucket_path  = string
    model        = string
    accelerator  = string
    cpu          = string
    memory       = string
    flags        = list(string)
    probe_period = number
    probe_count  = number
    engine_ready = number
  })
  default = null
}

variable "databases_own_key" {
  description = "Whether both databases are encrypted with this installation's own KMS key. Chosen when a database is made: false for an installation whose databases were made without."
  type        = bool
  default     = true
}
