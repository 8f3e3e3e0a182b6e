output "uri" {
  description = "Address of the function."
  value       = google_cloudfunctions2_function.this.service_config[0].uri
}

output "service" {
  description = "Name of the Cloud Run service behind it."
  value       = google_cloudfunctions2_function.this.name
}
