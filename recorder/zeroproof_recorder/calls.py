"""One call of an observed function: its arguments by name, its result, its failure."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Optional

from .guard import Observer, is_traced

Function = Callable[..., Any]
UNKNOWN = None  # an argument that this version of the function does not have


class Parameters:
    """Where the parameters of a function stand; empty for one that does not say."""

    def __init__(self, function: Function):
        self._function: Optional[Function] = function  # until its signature is asked for
        self._places: dict[str, int] = {}
        self._defaults: dict[str, Any] = {}
        self._is_opaque = True  # the signature gives no names: a decorator's *args

    def pick(
        self, names: tuple[str, ...], place: Optional[int], args: tuple, kwargs: dict[str, Any]
    ) -> Any:
        """The argument of one of these names, its default where not given, else UNKNOWN.

        `place` is where it stands in the versions that are known, for a signature without names.
        """
        self._read()
        for name in names:
            if name in kwargs:
                return kwargs[name]
            at = self._places.get(name)
            if at is not None and at < len(args):
                return args[at]
            if name in self._defaults:
                return self._defaults[name]
        if self._is_opaque and place is not None and place < len(args):
            return args[place]
        return UNKNOWN

    def name_at(self, place: int) -> Optional[str]:
        """The name of a positional parameter."""
        self._read()
        return next((name for name, at in self._places.items() if at == place), None)

    def _read(self) -> None:
        function, self._function = self._function, None
        if function is None:
            return
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            return
        self._is_opaque = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        for place, parameter in enumerate(parameters):
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                self._places[parameter.name] = place
            if parameter.default is not parameter.empty:
                self._defaults[parameter.name] = parameter.default


class Call:
    """What an observer sees of a call. It holds references and cannot change the call."""

    __slots__ = ("_parameters", "args", "error", "kwargs", "result", "token")

    def __init__(self, parameters: Parameters, args: tuple, kwargs: dict[str, Any]):
        self._parameters = parameters
        self.args = args
        self.kwargs = dict(kwargs) if kwargs else kwargs
        self.token: Any = None  # for the observer, from before to after
        self.result: Any = None
        self.error: Optional[BaseException] = None  # that ended it; while `after` runs

    @property
    def subject(self) -> Any:
        """The first argument: the object of a method."""
        return self.args[0] if self.args else None

    @property
    def failure(self) -> Optional[str]:
        """The type of the exception that ended the call."""
        return None if self.error is None else type(self.error).__name__

    def argument(self, *names: str, place: Optional[int] = None) -> Any:
        """An argument by its name in the original function, or those that versions gave it."""
        return self._parameters.pick(names, place, self.args, self.kwargs)


Watcher = Callable[[Call], None]


class Use:
    """Whether replacements are in use: one that could not be taken back only passes on."""

    __slots__ = ("is_in_use",)

    def __init__(self):
        self.is_in_use = True


def observed(
    original: Function,
    observer: Observer,
    use: Use,
    before: Optional[Watcher] = None,
    after: Optional[Watcher] = None,
) -> Function:
    """The original between two observers: called once, with the arguments as they came.

    `after` runs however the call ended. An exception of the original goes on as it is.
    """
    parameters = Parameters(original)

    @functools.wraps(original)
    def observed_call(*args, **kwargs):
        if is_traced() or not (observer.is_on and use.is_in_use):
            return original(*args, **kwargs)
        call = Call(parameters, args, kwargs)
        if before is not None:
            try:
                before(call)
            except Exception as error:
                observer.failed(error)
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            call.error = error
            finish(call)
            call.error = None  # the frame that holds the call is in the error's traceback
            raise
        if after is not None and observer.is_on:
            call.result = result
            try:
                after(call)
            except Exception as error:
                observer.failed(error)
        return result

    finish = observer.guarded(after) if after is not None else _nothing
    return observed_call


def _nothing(_call: Call) -> None:
    pass


def with_stand_in(
    original: Function,
    observer: Observer,
    use: Use,
    argument: Callable[[Any], Any],
    result: Optional[Callable[[Any, Any], Any]] = None,
    place: int = 0,
) -> Function:
    """The original, with a function among its arguments replaced by one that passes every call on.

    `argument` makes the stand-in; `result` makes one of the original's result, given both.
    Where they fail the original gets and returns what it would have.
    """
    parameters = Parameters(original)
    make = observer.guarded(argument)
    finish = observer.guarded(result) if result else None
    put = observer.guarded(functools.partial(_put, parameters, place))

    @functools.wraps(original)
    def call_with_stand_in(*args, **kwargs):
        if is_traced() or not (observer.is_on and use.is_in_use):
            return original(*args, **kwargs)
        stand_in, changed = None, put(make, args, kwargs)
        if changed is not None:
            stand_in, args, kwargs = changed
        made = original(*args, **kwargs)
        if finish is None or stand_in is None:
            return made
        finished = finish(stand_in, made)
        return made if finished is None else finished

    return call_with_stand_in


def _put(parameters: Parameters, place: int, make: Function, args: tuple, kwargs: dict[str, Any]):
    if place < len(args):
        stand_in = make(args[place])
        changed = (*args[:place], stand_in, *args[place + 1 :])
        return None if stand_in is None else (stand_in, changed, kwargs)
    name = parameters.name_at(place)
    if name not in kwargs:
        return None
    stand_in = make(kwargs[name])
    return None if stand_in is None else (stand_in, args, {**kwargs, name: stand_in})
