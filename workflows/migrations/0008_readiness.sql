-- expand: the readiness probe writes a row, so that a database that can only be read is noticed
create table readiness (
    only_row   boolean primary key default true,
    written_at timestamptz not null,
    constraint one_row check (only_row)
);
