// The stored form of a context, for those who write a store.
#pragma once

#include <stela/framework/context.hpp>
#include <stela/framework/export.hpp>

#include <string>
#include <string_view>

namespace stela::metadata {

/// Actor, trace and headers as a compact JSON object; empty if the context has none of them.
STELA_FRAMEWORK_EXPORT std::string encode(const Context& context);

/// What `encode` wrote; throws codec::DecodeError on anything else. Fields that this version
/// doesn't know are ignored.
STELA_FRAMEWORK_EXPORT Context decode(std::string_view text);

/// UsageError unless all of the context can be stored and sent as headers.
STELA_FRAMEWORK_EXPORT void check(const Context& context);

}  // namespace stela::metadata
