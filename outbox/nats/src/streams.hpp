// JetStream streams: making them, and seeing whether one that is there keeps what is published.
#pragma once

#include "handles.hpp"

#include <stela/nats/publisher.hpp>

#include <string>

namespace stela::nats {

/// Makes the stream unless it is there. BrokerFailed with what the server said.
void make_stream(jsCtx* context, const std::string& name, const std::string& subjects,
                 const StreamOptions& options);

/// What is dangerous about a stream for this fence, and what to do about it; empty if nothing is.
std::string danger_in(const jsStreamConfig& config, const std::string& subjects, Fence fence);

}  // namespace stela::nats
