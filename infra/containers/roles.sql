-- Runs once, when the database of the metadata is made. The owner migrates; muster_app only runs.
-- jobs_admin is for registering this PostgreSQL as a server: it makes the control databases of job accounts.
\set app `cat /run/secrets/app_password`
\set jobs `cat /run/secrets/jobs_password`
create role muster_app login password :'app';
create role jobs_admin login createdb createrole password :'jobs';
