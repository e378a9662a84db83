// The stored form of a context, for authors of stores.
#pragma once

#include <stela/framework/context.hpp>
#include <stela/framework/export.hpp>

#include <string>
#include <string_view>

namespace stela::metadata {

/// Actor, trace and headers as a compact JSON object. Empty if the context has none of them.
STELA_FRAMEWORK_EXPORT std::string encode(const Context& context);

/// Reads what `encode` wrote. Throws codec::DecodeError on anything else. Ignores fields that this
/// version doesn't know.
STELA_FRAMEWORK_EXPORT Context decode(std::string_view text);

/// UsageError unless the whole context can be stored and sent as headers.
STELA_FRAMEWORK_EXPORT void check(const Context& context);

}  // namespace stela::metadata
