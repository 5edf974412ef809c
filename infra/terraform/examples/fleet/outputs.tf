output "account_id" {
  value = muster_job_account.nightly.id
}

output "job_id" {
  value = muster_job.count.id
}
