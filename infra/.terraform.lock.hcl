# The versions that the check of names and attributes was made with. Their checksums come from the providers' own registry:
# "terraform -chdir=infra providers lock -platform=linux_amd64 -platform=darwin_arm64" writes them here; commit the file.
provider "registry.terraform.io/hashicorp/archive" {
  version     = "2.7.1"
  constraints = "~> 2.7"
}

provider "registry.terraform.io/hashicorp/google" {
  version     = "6.37.0"
  constraints = "~> 6.30"
}

provider "registry.terraform.io/hashicorp/google-beta" {
  version     = "6.37.0"
  constraints = "~> 6.30"
}
