import Anthropic, { toFile } from 'anthropic-current';

import { anthropicTests } from './anthropic.mjs';

anthropicTests('current', { Anthropic, toFile });
