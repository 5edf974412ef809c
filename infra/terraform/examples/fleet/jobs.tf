resource "muster_job_account" "nightly" {
  server_id   = muster_server.home.id
  name        = "nightly"
  database_id = muster_database.jobs.id
  run_attempts {
    enabled = true
  }
}

resource "muster_credential" "tenants" {
  for_each            = var.servers
  account_id          = muster_job_account.nightly.id
  name                = "tenants-${each.key}"
  username            = each.value.login
  password_wo         = var.passwords[each.key]
  password_wo_version = var.password_version
  servers             = [muster_server.tenants[each.key].name]
}

resource "muster_target_group" "gold" {
  account_id = muster_job_account.nightly.id
  name       = "gold"

  dynamic "member" {
    for_each = muster_server.tenants
    content {
      type        = "SqlServer"
      server_name = member.value.name
      credential  = muster_credential.tenants[member.key].id
      labels      = "tier=gold"
    }
  }
}

resource "muster_job" "count" {
  account_id  = muster_job_account.nightly.id
  name        = "nightly count"
  description = "Counts the orders of every tenant."

  schedule {
    cron      = "0 3 * * *"
    time_zone = "Europe/Berlin"
  }

  step {
    name         = "table"
    target_group = muster_target_group.gold.id
    sql          = "create table if not exists orders (id bigint)"
    rollout {
      waves               = ["1", "50%"]
      halt_after_failures = "10%"
    }
  }

  step {
    name         = "count"
    target_group = muster_target_group.gold.id
    sql          = "select count(*) from orders"
    verify {
      sql    = "select to_regclass('orders') is not null"
      expect = "true"
    }
    execution_options {
      timeout_seconds = 600
    }
  }
}

resource "muster_webhook" "pager" {
  count             = var.webhook_url == null ? 0 : 1
  account_id        = muster_job_account.nightly.id
  name              = "pager"
  url               = var.webhook_url
  events            = ["failed", "halted"]
  secret_wo         = var.webhook_secret
  secret_wo_version = var.password_version
}

resource "muster_role_assignment" "operators" {
  scope        = muster_resource_group.fleet.id
  role         = "Job Operator"
  principal_id = var.operators
  description  = "They start jobs and look at runs."
}
