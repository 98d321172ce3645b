"""The receiving half of every delivery mode, from `docs/protocol.md`: what an application gets to see."""

from protocol import FIRST_NUMBER, FRAGMENT_LEN, expand


class Assembler:
    """Puts fragments together."""

    def __init__(self):
        self.parts, self.done = {}, set()

    def add(self, number, message):
        """The whole message once it is complete, and only once."""
        if number in self.done:
            return None
        parts = self.parts.setdefault(number, {})
        parts[message.index] = message.payload
        if len(parts) < -(-message.total // FRAGMENT_LEN):
            return None
        self.done.add(number)
        del self.parts[number]
        return b"".join(parts[i] for i in range(len(parts)))


class Receiver:
    """One channel: `message` and `skip` put what the application gets into `delivered`."""

    def __init__(self, delivery, window=0, percent=0):
        self.delivery, self.window = delivery, window
        self.losses = window * (100 - percent) // 100
        self.delivered, self.assembler = [], Assembler()
        self.next, self.newest = FIRST_NUMBER, FIRST_NUMBER - 1
        self.settled, self.waiting = set(), {}
        self.counted = self.skipped = 0
        self.lost = []

    def message(self, message):
        near = self.newest if self.delivery in ("unreliable", "sequenced", "newest") else self.next
        number = None if message.number_low is None else expand(message.number_low, near)
        payload = message.payload
        if message.index is not None:
            if self.delivery in ("sequenced", "newest") and number <= self.newest:
                return
            payload = self.assembler.add(number, message)
            if payload is None:
                return
        getattr(self, "_" + self.delivery)(number, payload)

    def skip(self, number_low):
        number = expand(number_low, self.next)
        if number >= self.next and number not in self.settled and number not in self.waiting:
            self.settled.add(number)
            self._drain()

    def _unreliable(self, number, payload):
        self.newest = max(self.newest, number or 0)
        self.delivered.append(payload)

    def _sequenced(self, number, payload):
        if number > self.newest:
            self.newest = number
            self.delivered.append(payload)

    _newest = _sequenced

    def _unordered(self, number, payload):
        if number >= self.next and number not in self.settled:
            self.settled.add(number)
            self.delivered.append(payload)
            self._drain()

    def _ordered(self, number, payload):
        if number >= self.next and number not in self.settled:
            self.waiting.setdefault(number, payload)
            self._drain()

    def _drain(self):
        while self.next in self.settled or self.next in self.waiting:
            if self.next in self.waiting:
                self.delivered.append(self.waiting.pop(self.next))
            self.settled.discard(self.next)
            self.next += 1

    def _partial(self, number, payload):
        if not self.next <= number < self.next + self.window or number in self.waiting:
            return
        self.waiting[number] = payload
        while self.waiting and self._accept(min(self.waiting)):
            pass

    def _accept(self, number):
        distance, room = number - self.next, self.window - self.counted
        if distance < room:
            if self.skipped + distance > self.losses:
                return False
            self.counted, self.skipped = self.counted + distance + 1, self.skipped + distance
        else:
            if self.skipped + room > self.losses or distance - room > self.losses:
                return False
            self.counted, self.skipped = distance - room + 1, distance - room
        if self.counted == self.window:
            self.counted = self.skipped = 0
        self.lost.extend(range(self.next, number))
        self.delivered.append(self.waiting.pop(number))
        self.next = number + 1
        return True
