output "url" {
  description = "Base URL of the OpenAI-compatible interface."
  value       = "${google_cloud_run_v2_service.this.uri}/v1"
}
