-- Runs once, when the database of the metadata is made. The owner migrates; muster_app only runs.
\set app `cat /run/secrets/app_password`
create role muster_app login password :'app';
