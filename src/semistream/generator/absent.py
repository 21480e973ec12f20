"""Keys that the master table does not have."""

from __future__ import annotations

from semistream.core.arrays import Int64Array
from semistream.core.errors import InvalidSettingError
from semistream.generator.randomness import UniformNumbers
from semistream.generator.settings import share_of_one
from semistream.generator.stream_keys import MasterKeySource


class AbsentKeys:
    """Replaces a share of the draws by keys that are not in the master table.

    An absent key is the drawn key plus one, so absent keys lie between the present ones and are as skewed as they are.
    That needs a `stride` of at least 2 in the keys.
    """

    def __init__(self, keys: MasterKeySource, share: float, seed: int) -> None:
        if keys.stride < 2:
            raise InvalidSettingError("Absent keys need gaps between the present ones: give the keys a stride of 2.")
        self.key_count = keys.key_count
        self.stride = keys.stride
        self._keys = keys
        self._share = share_of_one("share", share)
        self._uniforms = UniformNumbers("absent keys", seed)

    def draw(self, count: int) -> Int64Array:
        """Return the next `count` keys."""
        keys = self._keys.draw(count)
        return keys + (self._uniforms.take(len(keys)) < self._share)

    def seek(self, position: int) -> None:
        """Let the next draw begin with the key at `position`, from 0 on."""
        self._keys.seek(position)
        self._uniforms.seek(position)
