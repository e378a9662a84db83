// What the console answers where it can't do what it is asked for.
#pragma once

#include "console/people.hpp"
#include "http/message.hpp"

#include <string_view>

namespace stela::tool {

/// As RFC 9457 has it: "title" is the same for all of a kind, "detail" a sentence on this one.
/// `more` are further members: `"grant":"operate"`.
HttpResponse problem(unsigned status, std::string_view title, std::string_view detail,
                     std::string_view more = {});

/// Whoever asks has no such grant.
HttpResponse not_granted(Grant grant);

HttpResponse json_answer(std::string json);

/// Its Content-Type says so.
bool is_json(const HttpRequest& request);

}  // namespace stela::tool
