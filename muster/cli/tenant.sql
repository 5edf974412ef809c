-- What every tenant of the demo has: a table of orders with some rows.
create table if not exists public.orders (
    order_id integer generated always as identity primary key,
    customer text not null,
    price    numeric(10, 2) not null,
    quantity integer not null default 1
);
insert into public.orders (customer, price, quantity)
select 'customer ' || n % 17, 10 + n % 90, 1 + n % 3
  from generate_series(1, 200) n
 where not exists (select from public.orders);
