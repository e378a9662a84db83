// The console's answers to requests that it can't fulfil.
#pragma once

#include "console/people.hpp"
#include "http/message.hpp"

#include <string_view>

namespace stela::tool {

/// In the form of RFC 9457: "title" is the same for all problems of a kind, "detail" is a sentence
/// about this one. `more` has further members: `"grant":"operate"`.
HttpResponse problem(unsigned status, std::string_view title, std::string_view detail,
                     std::string_view more = {});

/// The user lacks the grant.
HttpResponse not_granted(Grant grant);

HttpResponse json_answer(std::string json);

/// True if its Content-Type is JSON.
bool is_json(const HttpRequest& request);

}  // namespace stela::tool
