async def test_x(db):
    assert await db.fetchval("select count(*) from resource") == 0
