#include "commands/examination.hpp"

#include "cli/text.hpp"

#include <stela/framework/codec/json_writer.hpp>

namespace stela::tool {

void Examination::print(std::string_view state, std::string_view what, const std::string& text,
                        const std::string& advice) {
  if (out_.is_json()) {
    std::string object;
    json::ObjectWriter{object}
        .add("check", what)
        .add("state", state)
        .add("finding", in_one_line(text))
        .add("advice", in_one_line(advice))
        .close();
    return out_.json(object);
  }
  std::string line{state};
  line.append(9 - line.size(), ' ').append(what).append(": ").append(in_one_line(text));
  out_.line(line);
  if (!advice.empty()) out_.line("         → " + in_one_line(advice));
}

}  // namespace stela::tool
