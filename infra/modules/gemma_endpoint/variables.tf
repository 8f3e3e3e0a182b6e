variable "project" {
  description = "Id of the project."
  type        = string
}

variable "name" {
  description = "Name of the service; do not begin it with sre-, then the agent may watch it too."
  type        = string
}

variable "location" {
  description = "A region that has the accelerator."
  type        = string
}

variable "image" {
  description = "vLLM's image, pinned by digest or version."
  type        = string

  validation {
    condition     = !endswith(var.image, ":latest") && (strcontains(var.image, "@sha256:") || can(regex(":v?[0-9]", var.image)))
    error_message = "Pin a version: 'latest' changes memory rules between two starts."
  }
}

variable "bucket" {
  description = "Bucket that holds the checkpoint."
  type        = string
}

variable "bucket_path" {
  description = "Folder of the checkpoint in the bucket."
  type        = string
}

variable "model" {
  description = "Name under which the model is served, MODEL_NAME of the agent."
  type        = string
}

variable "accelerator" {
  description = "nvidia-l4 or nvidia-rtx-pro-6000."
  type        = string

  validation {
    condition     = contains(["nvidia-l4", "nvidia-rtx-pro-6000"], var.accelerator)
    error_message = "Cloud Run has nvidia-l4 and nvidia-rtx-pro-6000."
  }
}

variable "cpu" {
  description = "Virtual CPUs: 4 or more for an L4, 20 or more for an RTX PRO 6000."
  type        = string
}

variable "memory" {
  description = "Memory, such as 32Gi: 16Gi or more for an L4, 80Gi or more for an RTX PRO 6000."
  type        = string
}

variable "flags" {
  description = "vLLM flags as sre-agent advise proves them to fit."
  type        = list(string)
}

variable "probe_period" {
  description = "Seconds between two start-up probes."
  type        = number

  validation {
    condition     = var.probe_period >= 10 && var.probe_period <= 240
    error_message = "From 10 (the probe's own timeout) to 240 seconds."
  }
}

variable "probe_count" {
  description = "Start-up probes that may fail."
  type        = number

  validation {
    condition     = var.probe_count * var.probe_period <= 1800
    error_message = "Period times count is at most 1800 s for a GPU service."
  }
}

variable "engine_ready" {
  description = "VLLM_ENGINE_READY_TIMEOUT_S; at least the probe's budget, or vLLM gives up first."
  type        = number

  validation {
    condition     = var.engine_ready >= var.probe_count * var.probe_period
    error_message = "At least probe_period times probe_count."
  }
}

variable "caller" {
  description = "Who may call the model, as IAM names it."
  type        = string
}
