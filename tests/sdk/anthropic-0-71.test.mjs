import Anthropic, { toFile } from 'anthropic-0-71';

import { anthropicTests } from './anthropic.mjs';

anthropicTests('0.71', { Anthropic, toFile });
