#pragma once

#include <string>

#include "props/report/junit.h"
#include "props/report/palette.h"
#include "props/train/decoder_report.h"

namespace zeroproof {

// The reports of `zeroproof train --model`: for people, and "zeroproof.train_model/1" of
// docs/reference/output.md without a final line end.
std::string decoder_text(const train::DecoderReport& report, const Palette& palette);
std::string decoder_json(const train::DecoderReport& report);
JUnitCase decoder_case(const train::DecoderReport& report);

}  // namespace zeroproof
