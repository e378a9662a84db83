#include "commands/examination.hpp"

#include "cli/text.hpp"
#include "description/finding.hpp"

namespace stela::tool {
namespace {

/// "write-ahead log" as a code: write_ahead_log.
std::string as_code(std::string_view what) {
  std::string code;
  for (const char c : what) {
    const bool is_capital = c >= 'A' && c <= 'Z';
    const bool is_word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    code += is_capital ? static_cast<char>(c - 'A' + 'a') : is_word ? c : '_';
  }
  return code;
}

}  // namespace

void Examination::tell(const Finding& finding) {
  is_well_ = is_well_ && finding.severity != Severity::critical;
  if (out_.is_json()) return print_json(out_, description::finding, finding);
  const bool is_known = !finding.known.empty();
  print(is_known ? "known" : word_of(finding.severity), facts_of(finding.code).word,
        finding.sentence, is_known ? finding.known : finding.remedy);
}

void Examination::print(std::string_view state, std::string_view what, const std::string& text,
                        const std::string& advice) {
  if (out_.is_json()) {
    // Uses the keys of a finding.
    return out_.json(to_json({{"code", as_code(what)},
                              {"severity", state},
                              {"subject", {}},
                              {"since_at", {}},
                              {"failure_class", {}},
                              {"sentence", in_one_line(text)},
                              {"remedy", in_one_line(advice)},
                              {"known", {}}}));
  }
  std::string line{state};
  line.append(9 - line.size(), ' ').append(what).append(": ").append(in_one_line(text));
  out_.line(line);
  if (!advice.empty()) out_.line("         → " + in_one_line(advice));
}

}  // namespace stela::tool
