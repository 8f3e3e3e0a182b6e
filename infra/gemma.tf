module "gemma_endpoint" {
  source       = "./modules/gemma_endpoint"
  count        = var.gemma_endpoint == null ? 0 : 1
  project      = var.project
  name         = var.gemma_endpoint.name
  location     = var.gemma_endpoint.location
  image        = var.gemma_endpoint.image
  bucket       = var.gemma_endpoint.bucket
  bucket_path  = var.gemma_endpoint.bucket_path
  model        = var.gemma_endpoint.model
  accelerator  = var.gemma_endpoint.accelerator
  cpu          = var.gemma_endpoint.cpu
  memory       = var.gemma_endpoint.memory
  flags        = var.gemma_endpoint.flags
  probe_period = var.gemma_endpoint.probe_period
  probe_count  = var.gemma_endpoint.probe_count
  engine_ready = var.gemma_endpoint.engine_ready
  caller       = module.identity["on_incident"].member
}
