output "functions" {
  description = "Address of each function."
  value       = { for name, f in module.function : name => f.uri }
}

output "slack_request_url" {
  description = "Where the Slack app sends presses of buttons (Interactivity, Request URL)."
  value       = "${module.function["decide"].uri}/slack/actions"
}

output "decide_url" {
  description = "Where the command line sends decisions: set DECIDE_URL to it."
  value       = local.decide_url
}

output "ingest_url" {
  description = "Where Alertmanager, Azure and EventBridge post; append the sender's name."
  value       = module.function["ingest"].uri
}

output "console_url" {
  description = "The console, behind IAP."
  value       = module.function["console"].uri
}

output "accounts" {
  description = "The account of each function; a service that lets only some callers in must let these in."
  value       = { for name, identity in module.identity : name => identity.email }
}

output "secrets" {
  description = "Secret Manager's name of each secret setting."
  value       = { for key, secret in google_secret_manager_secret.setting : key => secret.secret_id }
}

output "not_given" {
  description = "Secrets without a version in secret_versions: what needs them stays off."
  value       = setsubtract(keys(local.secrets), keys(var.secret_versions))
}

output "model_endpoint" {
  description = "Base URL for MODEL_ENDPOINTS, where this installation runs its own model."
  value       = one(module.gemma_endpoint[*].url)
}
