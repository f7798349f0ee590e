// Everything.
#pragma once

#include "qkv/attention.hpp"
#include "qkv/linear.hpp"
#include "qkv/mask.hpp"
#include "qkv/positional.hpp"
#include "qkv/rnn.hpp"
#include "qkv/softmax.hpp"
#include "qkv/status.hpp"
#include "qkv/thread_pool.hpp"
#include "qkv/trace.hpp"
#include "qkv/view.hpp"
#include "qkv/workspace.hpp"
