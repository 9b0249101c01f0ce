"""What counts as a difference."""

import unittest

from zeroproof_subject.compare import first_difference, has_reference, overflows
from zeroproof_subject.program import parse
from documents import STEP, backward, document, forward, observation

LOSS = observation("body/0/forward", "loss", {"": [4.0]})
GRADIENTS = observation("body/1/step", "gradients", {"w": [1.5, 2.0], "v": None})
PARAMETERS = observation("body/1/step", "parameters", {"w": [0.25, 0.5]})
REFERENCE = [LOSS, GRADIENTS, PARAMETERS]


def error(at, text):
    return {"at": at, "what": "error", "engine": "", "values": {"type": "E", "text": text}}


def changed(observed, **values):
    return {**observed, "values": {**observed["values"], **values}}


# What rank 1 saw, and where and how it differs.
CASES = [
    (REFERENCE, None),
    ([LOSS, changed(GRADIENTS, w=[1.5, 2.0000002]), PARAMETERS], ("gradients", "w is")),
    ([LOSS, changed(GRADIENTS, v=[0.0]), PARAMETERS], None),
    ([LOSS, changed(GRADIENTS, v=[1.0]), PARAMETERS], ("gradients", "v is [1], not [0]")),
    ([LOSS, changed(GRADIENTS, w=None), PARAMETERS], ("gradients", "w is [0, 0], not [1.5, 2]")),
    ([LOSS, GRADIENTS, changed(PARAMETERS, w=[0.2500001, 0.5])], None),
    ([LOSS, GRADIENTS, changed(PARAMETERS, w=[0.26, 0.5])], ("parameters", "w is")),
    ([LOSS, GRADIENTS, changed(PARAMETERS, w=[float("nan"), 0.5])], ("parameters", "w is")),
    ([LOSS, error("body/1/step", "no")], ("error", "E: no")),
    ([LOSS, PARAMETERS], ("parameters", "not expected here")),
]


class CompareTest(unittest.TestCase):
    def test_the_first_difference_of_a_rank(self):
        program = parse(document(ranks=2))
        for seen, expected in CASES:
            with self.subTest(seen=seen):
                found = first_difference(program, [REFERENCE, REFERENCE], [REFERENCE, seen])
                if expected is None:
                    self.assertIsNone(found)
                else:
                    self.assertEqual((found.rank, found.what), (1, expected[0]))
                    self.assertIn(expected[1], found.text)

    def test_the_rank_that_differs_first_is_reported(self):
        late = [LOSS, GRADIENTS, changed(PARAMETERS, w=[1.0, 1.0])]
        early = [changed(LOSS, **{"": [9.0]}), GRADIENTS, PARAMETERS]
        program = parse(document(ranks=2))
        found = first_difference(program, [REFERENCE, REFERENCE], [late, early])
        self.assertEqual((found.rank, found.what), (1, "loss"))

    def test_gradients_that_are_rounded_have_a_tolerance(self):
        rounded = [LOSS, changed(GRADIENTS, w=[1.5, 2.0000002]), PARAMETERS]
        for steps, is_found in ((2, True), (3, False)):
            program = parse(document(ranks=1, config={"gradient_accumulation_steps": steps}))
            found = first_difference(program, [REFERENCE], [rounded])
            self.assertEqual(found is not None, is_found, steps)

    def test_signatures_of_failures_have_no_numbers_and_names(self):
        program = parse(document(ranks=1))
        failed = error("body/1/step", "parameter 17 of 20, body.l0.weight, is lost")
        failed["values"]["frame"] = "deepspeed/runtime/engine.py:step"
        found = first_difference(program, [REFERENCE], [[LOSS, failed]])
        expected = "error at step in deepspeed/runtime/engine.py:step: E: parameter N of N, X, is lost"
        self.assertEqual(found.signature, expected)

    def test_a_parameter_whose_name_is_not_known_is_one_with_a_name(self):
        program = parse(document(ranks=1))
        found = [
            first_difference(program, [REFERENCE], [[LOSS, error("body/1/step", f"parameter {name} is lost")]])
            for name in ("unknown", "body.l0.weight")
        ]
        self.assertEqual(found[0].signature, found[1].signature)

    def test_signatures_of_numbers_say_how_they_are_wrong_and_what_was_before(self):
        program = parse(document(ranks=2, body=[forward("g"), backward("g"), STEP]))
        due = observation("body/2/step", "gradients", {"w": [2.0, 4.0], "v": None})
        cases = [
            ([{"w": None}, {"w": None}], "absent"),
            ([{"w": [1.0, 4.0]}, {"w": [1.0, 4.0]}], "too little"),
            ([{"w": [3.0, 4.0]}, {"w": [3.0, 4.0]}], "too much"),
            ([{"w": [1.0, 2.0]}, {"w": [1.0, 2.0]}], "a fraction"),
            ([{"w": [4.0, 8.0]}, {"w": [4.0, 8.0]}], "a multiple"),
            ([{"w": [2.0, 4.0], "v": [1.0]}] * 2, "where none is due"),
            ([{"w": [1.0, 4.0]}, {"w": [3.0, 4.0]}], "ranks disagree"),
        ]
        for values, relation in cases:
            with self.subTest(relation=relation):
                seen = [[{**due, "values": it}] for it in values]
                found = first_difference(program, [[due], [due]], seen)
                self.assertEqual(found.signature, f"gradients at step after backward: {relation}")

    def test_gradients_of_16_bits_are_rounded_where_a_divisor_is_no_power_of_two(self):
        near = [LOSS, changed(GRADIENTS, w=[1.51, 2.0]), PARAMETERS]
        for steps, is_found in ((2, True), (3, False)):
            config = {"bf16": {"enabled": True}, "gradient_accumulation_steps": steps}
            found = first_difference(parse(document(config=config)), [REFERENCE], [near])
            self.assertEqual(found is not None, is_found, steps)

    def test_parameters_of_16_bits_are_rounded(self):
        near = [LOSS, GRADIENTS, changed(PARAMETERS, w=[0.251, 0.5])]
        for config, is_found in (({}, True), ({"bf16": {"enabled": True}}, False)):
            program = parse(document(ranks=1, config=config))
            found = first_difference(program, [REFERENCE], [near])
            self.assertEqual(found is not None, is_found, config)

    def test_what_cannot_be_read_is_no_difference(self):
        unread = [LOSS, {**GRADIENTS, "values": None}, PARAMETERS]
        program = parse(document(ranks=1))
        self.assertIsNone(first_difference(program, [REFERENCE], [unread]))

    def test_a_loss_scale_that_overflows_is_not_judged(self):
        for fp16, expected in (
            ({"enabled": True}, True),
            ({"enabled": True, "initial_scale_power": 13}, False),
            ({"enabled": True, "initial_scale_power": 14}, True),
            ({"enabled": True, "loss_scale": 16}, False),
            ({"enabled": False}, False),
        ):
            self.assertEqual(overflows(parse(document(config={"fp16": fp16}))), expected, fp16)

    def test_a_reference_that_failed_is_none(self):
        self.assertTrue(has_reference([REFERENCE]))
        self.assertFalse(has_reference([REFERENCE, [LOSS, error("body/1/step", "x")]]))
        self.assertFalse(has_reference([[]]))


if __name__ == "__main__":
    unittest.main()
