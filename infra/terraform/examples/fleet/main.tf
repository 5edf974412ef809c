# A fleet: servers of yours, one embedded server for Muster's own data, an account, and a job over all tenants.

terraform {
  required_version = ">= 1.11" # write-only attributes
  required_providers {
    muster = { source = "muster.local/muster/muster" }
  }
}

# Address and token come from MUSTER_URL and MUSTER_TOKEN or MUSTER_TOKEN_FILE.
provider "muster" {}

resource "muster_resource_group" "fleet" {
  subscription_id = var.subscription_id
  name            = var.name
  tags            = { managed_by = "terraform" }
}

resource "muster_server" "home" {
  resource_group_id                       = muster_resource_group.fleet.id
  name                                    = "${var.name}-home"
  administrator_login                     = "home_admin"
  administrator_login_password_wo         = var.password
  administrator_login_password_wo_version = var.password_version
  deletion_policy                         = "Drop"
}

resource "muster_database" "jobs" {
  server_id = muster_server.home.id
  name      = "jobs"
}

resource "muster_server" "tenants" {
  for_each                                = var.servers
  resource_group_id                       = muster_resource_group.fleet.id
  name                                    = "${var.name}-${each.key}"
  administrator_login                     = each.value.login
  administrator_login_password_wo         = var.passwords[each.key]
  administrator_login_password_wo_version = var.password_version
  max_connections                         = 8
  labels                                  = { region = each.value.region }
  endpoint {
    host     = each.value.host
    port     = each.value.port
    ssl_mode = each.value.ssl_mode
  }
}

# Without `deletion_policy` a tenant's database stays on its server when `terraform destroy` forgets it.
resource "muster_database" "tenant" {
  for_each = {
    for pair in setproduct(keys(var.servers), var.tenants) : "${pair[0]}/${pair[1]}" => pair
  }
  server_id = muster_server.tenants[each.value[0]].id
  name      = each.value[1]
  labels    = { tier = "gold" }
}

resource "muster_elastic_pool" "tenants" {
  for_each           = muster_server.tenants
  server_id          = each.value.id
  name               = "tenants"
  databases          = var.tenants
  max_connections    = 4
  slots_per_database = 1
}
