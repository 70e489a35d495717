"""x"""
from tests.controller.house import *
from tests.controller.bank import *
async def test_smoke(tmp_path):
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, DONE)
        await h.run()
        op = await h.op()
        print(op)
        assert op.status.value=="succeeded"
        assert len(h.bank.job("job-1"))==2
