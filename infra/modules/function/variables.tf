variable "project" {
  description = "Id of the project."
  type        = string
}

variable "region" {
  description = "Region of the function."
  type        = string
}

variable "entry_point" {
  description = "Name of the Python function, of its file, and with hyphens of the service."
  type        = string
}

variable "source_dir" {
  description = "The staged folder: main.py, agent/, prompts/, requirements.txt."
  type        = string
}

variable "bucket" {
  description = "Bucket of the sources."
  type        = string
}

variable "builder" {
  description = "Id of the account that builds."
  type        = string
}

variable "account" {
  description = "E-mail of the account that runs."
  type        = string
}

variable "open" {
  description = "Whether anybody may call; the function then checks its callers itself."
  type        = bool
}

variable "ingress" {
  description = "ALLOW_INTERNAL_ONLY for what only Pub/Sub and Scheduler call."
  type        = string

  validation {
    condition     = contains(["ALLOW_ALL", "ALLOW_INTERNAL_ONLY"], var.ingress)
    error_message = "One of ALLOW_ALL and ALLOW_INTERNAL_ONLY."
  }
}

variable "min" {
  description = "Instances that are always warm."
  type        = number
}

variable "max" {
  description = "Most instances."
  type        = number
}

variable "concurrency" {
  description = "Requests at once in one instance."
  type        = number
}

variable "memory" {
  description = "Memory of an instance, such as 1Gi."
  type        = string
}

variable "timeout" {
  description = "Seconds that one request may take."
  type        = number

  validation {
    condition     = var.timeout <= 540
    error_message = "A request must end before its acknowledgement deadline of 600 s does."
  }
}

variable "environment" {
  description = "Settings that are no secrets."
  type        = map(string)
}

variable "secrets" {
  description = "Settings that are: the secret and its pinned version, by name."
  type = map(object({
    secret  = string
    version = string
  }))
}

variable "images" {
  description = "The repository that holds the function's image, projects/P/locations/L/repositories/R."
  type        = string
}

variable "key" {
  description = "The KMS key that encrypts the function's source and image."
  type        = string
}
