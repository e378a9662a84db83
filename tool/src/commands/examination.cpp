#include "commands/examination.hpp"

#include "cli/text.hpp"
#include "description/description.hpp"

namespace stela::tool {

void Examination::tell(const Finding& finding) {
  is_well_ = is_well_ && finding.severity != Severity::critical;
  const bool is_known = !finding.known.empty();
  print(is_known ? "known" : word_of(finding.severity), facts_of(finding.code).word,
        finding.sentence, is_known ? finding.known : finding.remedy);
}

void Examination::print(std::string_view state, std::string_view what, const std::string& text,
                        const std::string& advice) {
  if (out_.is_json()) {
    return out_.json(to_json({{"check", what},
                              {"state", state},
                              {"finding", in_one_line(text)},
                              {"advice", in_one_line(advice)}}));
  }
  std::string line{state};
  line.append(9 - line.size(), ' ').append(what).append(": ").append(in_one_line(text));
  out_.line(line);
  if (!advice.empty()) out_.line("         → " + in_one_line(advice));
}

}  // namespace stela::tool
