"""What strikes a world: stops, deaths, clocks that jump, disks that fail, secrets that change.

Job: carry a blow out, count it as covered. Must not know: what is right, what the code under test does about it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tests.sim import contracts
from tests.sim.plan import NAPS_MS, STEPS_MS, STOPS_AT_PORT_MS, STOPS_MS, STORE_FAULTS
from tests.sim.things import BOOT, WALL

if TYPE_CHECKING:
    from tests.sim.loop import Process

YEAR_2000: Final = 946_684_805_000


class Fate:
    """The part of a world that does harm; `World` is the whole."""

    chance: Any
    plan: Any
    loop: Any
    watch: Any
    keyring: Any
    provider: Any
    files: Any
    violation: Any
    chaos: bool
    wall_step: int
    wall_steps: int
    suspended: int
    boot_number: int
    _boot_from: int
    workers: dict[int, Any]
    dead_owners: set[str]
    note: Callable[..., None]
    cover: Callable[[str], None]
    later: Callable[[int, Callable[[], None]], None]
    start_worker: Callable[[int], None]

    def is_proved_dead(self, owner: str) -> bool:
        return self.plan.proof_of_death and owner in self.dead_owners

    def strikes(self, process: Process, where: str) -> bool:
        """At a port: is *process* stopped or killed right here?"""
        if not self.chaos:
            return False
        draw = self.chance.random()
        stop, kill = self.plan.stop_at_port, self.plan.kill_at_port
        if where == self.plan.focus:
            stop, kill = (0.08, 0.01) if where == "keyring" else (0.05, 0.05)
        if draw < stop:
            self.stop(process, self.chance.choice(STOPS_AT_PORT_MS), where)
            return True
        if draw > 1.0 - kill:
            self.cover(f"SIGKILL {where}")
            self.kill(process)
        return False

    def stop(self, process: Process, ms: int, where: str) -> None:
        self.cover(f"SIGSTOP {ms // 1000} s {where}")
        self.note("stop", process.name, ms, where)
        process.stop()

        def resume() -> None:
            if process.stopped:
                self.note("resume", process.name)
                process.resume(self.loop)

        self.later(ms, resume)

    def kill(self, process: Process) -> None:
        if process.dead:
            return
        self.note("kill", process.name)
        self.dead_owners.add(process.name)
        process.kill(self.loop)
        self.watch.killed(process)
        if self.chaos:
            for number, running in list(self.workers.items()):
                if running.process is process:
                    self.later(self.chance.choice((200, 5_000, 45_000)), functools.partial(self._restart, number))

    def _restart(self, number: int) -> None:
        running = self.workers.get(number)
        if self.violation is None and (running is None or running.process.dead or running.task.done()):
            self.start_worker(number)

    def store_fault(self, process: Process) -> tuple[int, str] | None:
        if not self.chaos or self.chance.random() >= self.plan.store_fault:
            return None
        kind = self.chance.choice(STORE_FAULTS)
        self.cover(f"store {kind}")
        return (1 if kind == "SQLITE_BUSY" else self.chance.randrange(1, 14), kind)

    def strike(self) -> None:
        """One blow of fate."""
        chance = self.chance
        kind = chance.choices(list(self.plan.fates), list(self.plan.fates.values()))[0]
        alive = [r for r in self.workers.values() if not r.process.dead]
        match kind:
            case "kill" if alive:
                self.cover("SIGKILL at any time")
                self.kill(chance.choice(alive).process)
            case "stop" if alive:
                self.stop(chance.choice(alive).process, chance.choice(STOPS_MS), "at any time")
            case "end" if alive:
                self.cover("SIGTERM")
                running = chance.choice(alive)
                running.stop.set()
                number = next(n for n, r in self.workers.items() if r is running)
                self.later(20_000, lambda: self._restart(number))
            case "step":
                step = chance.choice(STEPS_MS)
                self.cover(f"wall step {step // 1000:+d} s")
                self.wall_step += step
                self.wall_steps += 1
            case "epoch":
                self.cover("wall to 2000 and back")
                self.wall_steps += 2
                before, self.wall_step = self.wall_step, YEAR_2000 - WALL
                self.later(chance.choice((2_000, 30_000)), lambda: setattr(self, "wall_step", before))
            case "suspend":
                nap = chance.choice(NAPS_MS)
                self.cover(f"suspend {nap // 1000} s")
                self.suspended += nap
            case "reboot":
                self.reboot()
            case "down":
                origin = chance.choice(sorted(contracts.ORIGINS.values()))
                self.cover("origin down")
                self.provider.down_until[origin] = self.loop.ms + chance.choice((10_000, 60_000, 200_000))
            case "rotate":
                name = chance.choice(self.plan.credentials)
                self.cover("secret rotated")
                if chance.random() < 0.5:
                    self.provider.revoked.add(self.keyring.secrets[name])
                if chance.random() < 0.7:
                    self.keyring.set(name, self.keyring.infos[name].origins)
            case "lock":
                self.cover("keyring locked")
                self.keyring.locked_until = self.loop.ms + chance.choice((5_000, 60_000))
            case "mend":
                self.cover("contract file edited")
                self.files.mended.add(chance.choice(self.plan.providers))

    def reboot(self) -> None:
        """All processes die, the boot clock begins anew, the wall clock goes on."""
        self.cover("reboot")
        for running in self.workers.values():
            self.kill(running.process)
        self.boot_number += 1
        gap = self.chance.choice((3_000, 60_000))
        self.suspended += gap
        self._boot_from = self.loop.ms + self.suspended + self.chance.randrange(0, BOOT)
        self.watch.rebooted()
