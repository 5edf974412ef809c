-- expand: stands here until the branch of that number is merged
select 1;
