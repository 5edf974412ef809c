-- expand: from here on there is reserve_v2, by which completions are read together with the next reservation
comment on table jobs_internal.completion is
    'What became of tasks: a batch a row, read by key, also by the statement that reserves; the rows of executions are the truth.';
