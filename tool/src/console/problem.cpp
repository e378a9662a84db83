#include "console/problem.hpp"

#include "cli/text.hpp"

#include <stela/framework/codec/detail/json_writer.hpp>

namespace stela::tool {

HttpResponse problem(unsigned status, std::string_view title, std::string_view detail,
                     std::string_view more) {
  HttpResponse response{.status = status, .content_type = "application/problem+json"};
  json::ObjectWriter{response.body}
      .add("type", "about:blank")
      .add("title", title)
      .add("status", status)
      .add("detail", in_lines(detail))
      .close();
  if (!more.empty()) response.body.insert(response.body.size() - 1, "," + std::string{more});
  return response;
}

HttpResponse not_granted(Grant grant) {
  const std::string name{name_of(grant)};
  return problem(403, "Not granted", "this needs the grant '" + name + "'",
                 "\"grant\":\"" + name + "\"");
}

bool is_json(const HttpRequest& request) {
  const auto type = request.field("content-type");
  return type && type->substr(0, type->find(';')) == "application/json";
}

HttpResponse json_answer(std::string json) {
  return {.content_type = "application/json", .body = std::move(json)};
}

}  // namespace stela::tool
