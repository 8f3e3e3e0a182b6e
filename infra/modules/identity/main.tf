variable "name" {
  description = "The function's name with hyphens."
  type        = string
}

variable "purpose" {
  description = "What the account is for."
  type        = string
}

resource "google_service_account" "this" {
  account_id   = "sre-${var.name}"
  display_name = var.purpose
}

output "email" {
  description = "The account's e-mail."
  value       = google_service_account.this.email
}

output "member" {
  description = "The account as IAM names it."
  value       = google_service_account.this.member
}
