variable "subscription_id" {
  type    = string
  default = "/subscriptions/main"
}

variable "name" {
  description = "Of the resource group, and the beginning of server names, which are unique in an installation."
  type        = string
  default     = "prod"
}

variable "servers" {
  description = "Your PostgreSQL servers by a short name."
  type = map(object({
    host     = string
    port     = optional(number, 5432)
    ssl_mode = optional(string, "verify-full")
    region   = optional(string, "eu")
    login    = string
  }))
}

variable "passwords" {
  description = "Of the logins, by the same names. Ephemeral: in no plan and no state."
  type        = map(string)
  ephemeral   = true
  sensitive   = true
}

variable "password" {
  description = "Of the administrator of the embedded server."
  type        = string
  ephemeral   = true
  sensitive   = true
}

variable "password_version" {
  description = "Another number sends all secrets again."
  type        = number
  default     = 1
}

variable "tenants" {
  type    = list(string)
  default = ["tenant_1", "tenant_2"]
}

variable "operators" {
  description = "Object id of the group or service token that may run jobs."
  type        = string
}

variable "webhook_url" {
  type    = string
  default = null
}

variable "webhook_secret" {
  type      = string
  ephemeral = true
  sensitive = true
  default   = null
}
